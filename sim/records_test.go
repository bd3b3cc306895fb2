package sim

import (
	"testing"

	"pgregory.net/rapid"
)

// Property: a record in use is nobody else's, a new one is zero, none has number
// 0, and the table holds no more than were ever in use at a time.
func TestRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table []int
		var free Free
		used := map[uint32]int{}
		most := 0
		for i := range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(used) == 0 || rapid.Bool().Draw(t, "alloc") {
				id := Alloc(&table, &free)
				if _, ok := used[id]; ok || id == 0 || table[id] != 0 {
					t.Fatalf("record %d, in use %t, holds %d", id, ok, table[id])
				}
				table[id], used[id] = i+1, i+1
				most = max(most, len(used))
				continue
			}
			for id, v := range used {
				if table[id] != v {
					t.Fatalf("record %d holds %d, want %d", id, table[id], v)
				}
				Release(&table, &free, id)
				delete(used, id)
				break
			}
		}
		if len(table) != most+1 {
			t.Fatalf("%d records for %d at a time", len(table)-1, most)
		}
	})
}
