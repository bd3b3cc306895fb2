package mlx5

import "time"

// Cases are what the test of the memory image runs: every order, shape of WQE and
// wrap, a full queue, error CQEs, a doorbell rung by the CPU, and planted defects
// that the NIC must catch.
func Cases() []Case {
	inline := func(n int) Shape { return Shape{Op: RDMAWrite, Inline: true, Bytes: n} }
	imm := func(n int) Shape { return Shape{Op: RDMAWriteImm, Inline: true, Bytes: n} }
	pointer := Shape{Op: RDMAWrite, Bytes: 1000}
	// One message at a time through a small queue.
	one := func(name string, change func(*Case)) Case {
		c := Case{Name: name, Depth: 64, CQEs: 32, Program: Program{
			Shapes: []Shape{inline(8)}, N: 300, Chain: 1, Window: 1, SignalEvery: 1, Order: GPURelease, Record: true, Budget: 5 * time.Second,
		}}
		change(&c)
		return c
	}
	mixed := []Shape{inline(8), imm(60), pointer, inline(92)}
	stream := func(c *Case) {
		c.Shapes, c.Depth, c.CQEs, c.Chain, c.Window, c.SignalEvery = mixed, 32, 16, 4, 12, 2
	}
	cs := []Case{}
	for _, o := range []Order{GPURelease, DeviceFence, SystemRelease, SystemFence} {
		for _, record := range []bool{true, false} {
			name := o.String()
			if !record {
				name += ", no record"
			}
			set := func(c *Case) { c.Order, c.Record = o, record }
			cs = append(cs, one(name, func(c *Case) { set(c); c.N, c.Warmup = 1000, 100 }),
				one(name+", chain of 4", func(c *Case) { stream(c); set(c) }))
		}
	}
	return append(cs,
		one("write inline, 64 B WQE", func(c *Case) { c.Shapes = []Shape{inline(28)} }),
		one("write inline, 128 B WQE", func(c *Case) { c.Shapes = []Shape{inline(92)} }),
		one("write by pointer", func(c *Case) { c.Shapes = []Shape{pointer} }),
		one("write with immediate", func(c *Case) { c.Shapes = []Shape{imm(8), {Op: RDMAWriteImm, Bytes: 64}} }),
		one("fence bits", func(c *Case) {
			c.Shapes[0].Flags = Fence
			c.Shapes = append(c.Shapes, Shape{Op: RDMAWrite, Bytes: 8, Flags: SmallFence})
		}),
		one("a WQE across the ring's end", func(c *Case) { stream(c); c.Shapes = []Shape{inline(8), inline(92), inline(92)} }),
		one("index and record wrap at 16 bits", func(c *Case) { stream(c); c.Start = 65536 - 50 }),
		one("consumer index wraps at 24 bits", func(c *Case) { c.Start = 1<<24 - 50 }),
		one("70,000 messages", func(c *Case) { stream(c); c.N = 70000 }),
		one("NIC that reads the record at any time", func(c *Case) { stream(c); c.Eager = true }),
		one("full queue", func(c *Case) { c.Depth, c.Window, c.Hold = 16, 40, 16 }),
		one("full queue of 128 B WQEs", func(c *Case) { c.Shapes, c.Depth, c.Window, c.Hold = []Shape{inline(60)}, 16, 40, 16 }),
		one("error CQE", func(c *Case) { c.FailAt, c.Syndrome, c.Vendor = 37, RemoteAccess, 0x88 }),
		one("error CQE of a WQE that asked for none", func(c *Case) { stream(c); c.FailAt, c.Syndrome, c.Vendor = 41, RetryExceeded, 0x81 }),
		one("a NIC that answers nothing", func(c *Case) { c.Mute, c.Budget = true, 300*time.Millisecond }),
		one("the CPU rings", func(c *Case) { stream(c); c.CPURings = true }),
		one("the CPU rings, no record", func(c *Case) { c.CPURings, c.Record = true, false }),
		one("no order: what is seen", func(c *Case) { stream(c); c.Order, c.Observed, c.N = NoOrder, true, 20000 }),
		one("planted: doorbell before its WQE", func(c *Case) { c.EarlyDoorbell, c.Budget, c.N = true, time.Second, 8 }),
		one("planted: slots taken that are not free", func(c *Case) { c.NoRoom, c.Depth, c.Window, c.Hold = true, 16, 40, 64 }),
	)
}
