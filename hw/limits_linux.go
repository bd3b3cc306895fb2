package hw

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// lockedMemory says how much memory this process may register without privilege.
func lockedMemory() string {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r); err != nil {
		return err.Error()
	}
	if r.Cur == unix.RLIM_INFINITY {
		return "unlimited"
	}
	return fmt.Sprintf("%d KiB", r.Cur/1024)
}
