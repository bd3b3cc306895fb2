package sim

// Free has the numbers of the records of a table that nobody uses.
type Free []uint32

// Alloc returns the number of a zero record of the table, which grows where none
// is free. No record has number 0, which may stand for none.
func Alloc[T any](table *[]T, free *Free) uint32 {
	if n := len(*free); n > 0 {
		id := (*free)[n-1]
		*free = (*free)[:n-1]
		return id
	}
	var zero T
	if len(*table) == 0 {
		*table = append(*table, zero)
	}
	*table = append(*table, zero)
	return uint32(len(*table) - 1)
}

// Release makes the record zero, and free to be used again.
func Release[T any](table *[]T, free *Free, id uint32) {
	var zero T
	(*table)[id] = zero
	*free = append(*free, id)
}
