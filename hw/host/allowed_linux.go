package host

import "golang.org/x/sys/unix"

// allowed returns the cores that this process may use, in order.
func allowed() ([]int, error) {
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
