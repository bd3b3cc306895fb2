package host

import "golang.org/x/sys/unix"

// Allowed returns the cores that this process may use, in order.
func Allowed() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	var out []int
	for c := range 8 * len(set) * 8 {
		if set.IsSet(c) {
			out = append(out, c)
		}
	}
	return out, nil
}
