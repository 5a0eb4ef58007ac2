package packet

// Cache keeps the plans of the bitmaps last seen. It has a fixed size: traffic with ever new bitmaps costs a
// compilation each and no memory. The zero Cache is ready; it is for one goroutine.
type Cache struct {
	slots [cacheSlots]slot
}

const cacheSlots = 64

type slot struct {
	key  uint32 // bitmap, layout from bit 16, bit 31 set when the slot is in use
	plan Plan
}

// Plan returns the plan of bitmap. It is valid until the next call.
func (c *Cache) Plan(l Layout, bitmap uint16) *Plan {
	key := 1<<31 | uint32(l)<<16 | uint32(bitmap)
	s := &c.slots[(key*0x9e3779b1)>>(32-6)]
	if s.key != key {
		s.key, s.plan = key, Compile(l, bitmap)
	}
	return &s.plan
}
