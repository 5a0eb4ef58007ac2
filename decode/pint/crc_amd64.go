//go:build !purego

package pint

// GFNI multiplies bytes with matrices over GF(2), and a CRC is such a product. The Go version is in crc.go.

//go:noescape
func crcBelow8(key uint32, m *crcMatrices, crcs *uint32, limits *[MaxHops]uint32, groups int) (set uint64)

//go:noescape
func crcValues8(dst, values *uint32, key uint32, m *crcMatrices, groups, shift int)

// crcMatrices are the matrices of crc for the four bytes of the number, lowest first. Each byte has one for the two
// lower bytes of the result and one for the two higher, each twice.
type crcMatrices struct {
	matrix [4][2][4]uint64
	zero   uint32
}

var matrices = func() *crcMatrices {
	m := &crcMatrices{zero: crc(0)}
	for i := range m.matrix {
		for j := range 4 {
			x := &m.matrix[i][j/2][j%2]
			for row := range 8 { // the first row stands in the highest byte
				for column := range 8 {
					bit := uint64(crcTables[i][1<<column] >> (8*j + row) & 1)
					*x |= bit << (8*(7-row) + column)
				}
			}
			m.matrix[i][j/2][j%2+2] = *x
		}
	}
	return m
}()

var hasGFNI = func() bool {
	if !hasAVX2 {
		return false
	}
	_, _, c, _ := cpuid(7, 0)
	return c>>8&1 != 0
}()

// crcBelow is the set of the first k hops, up to MaxHops, whose hashes are not above their limits.
func crcBelow(key uint32, limits *[MaxHops]uint32, k int) uint64 {
	if !hasGFNI || k < 1 {
		return crcBelowGo(key, limits, k)
	}
	return crcBelow8(key, matrices, &hopCRC[1], limits, (k+7)/8) & (^uint64(0) >> (MaxHops - k))
}

// crcValues sets dst[n] to the highest bits of the hash of values[n].
func crcValues(dst []uint32, key uint32, values []uint32, shift int) {
	n := len(values) &^ 7
	if !hasGFNI || n == 0 {
		crcValuesGo(dst, key, values, shift)
		return
	}
	_ = dst[n-1]
	crcValues8(&dst[0], &values[0], key, matrices, n/8, shift)
	crcValuesGo(dst[n:], key, values[n:], shift)
}
