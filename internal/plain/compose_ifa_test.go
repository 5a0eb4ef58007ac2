package plain_test

// ifa is a packet of IPv4 or IPv6 with the in-band flow analyser, mostly right.
func (c composer) ifa() []byte {
	next := []byte{6, 17, 47, 4}[min(c.IntN(7), 3)%4]
	if c.IntN(3) == 0 {
		next = 17
	}
	var transport []byte
	switch next {
	case 6:
		transport = random(c.Rand, 20+4*c.IntN(3))
		transport[12] = byte(len(transport)/4) << 4
	case 47:
		options := byte(c.IntN(16)) << 4 & 0xb0
		transport = []byte{options, 0, 0x65, 0x58}
		for ; options != 0; options &= options - 1 {
			transport = append(transport, 0, 0, 0, 7)
		}
	default:
		transport = []byte{0x10, 0x64, 0x23, 0x44, 0, 12, 0, 0}
	}
	hops := c.IntN(5)
	head := []byte{0x20 | byte(c.IntN(3)*7+1), next, byte(c.IntN(2))<<2 | byte(c.IntN(2))<<1, byte(8 * (hops + c.IntN(3)))}
	meta := []byte{0xff, 0, byte(253 + c.IntN(3)), byte(8 * hops)}
	for range hops {
		block := random(c.Rand, 32)
		block[0] = block[0]&0xf | byte(c.IntN(30))/14<<4
		block[12] &= 0x1f
		meta = append(meta, block...)
	}
	if c.IntN(20) == 0 {
		meta[3]--
	}
	if c.IntN(20) == 0 {
		head[2] |= 1 << c.IntN(5)
	}
	body := append(append(append(head, transport...), meta...), "data"...)
	if c.IntN(3) == 0 {
		b := make([]byte, 40)
		b[0], b[6], b[7], b[8], b[23], b[24], b[39] = 0x60, 253, 64, 0xfd, 1, 0xfd, 2
		setU16(b, 4, len(body))
		return append(b, body...)
	}
	b := []byte{0x45, 0, 0, 0, 0x10, 1, 0x40, 0, 64, 253, 0, 0, 10, 0, 1, 1, 10, 0, 2, 2}
	setU16(b, 2, len(b)+len(body))
	return append(b, body...)
}
