package cuda

import _ "embed" // the kernels travel in the program

//go:embed kernels.ptx
var ptx string
