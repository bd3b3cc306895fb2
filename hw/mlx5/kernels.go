package mlx5

import _ "embed"

// kernels is post.cu for any GPU from compute capability 7.0 on; `make ptx` builds
// it.
//
//go:embed post.ptx
var kernels string
