package sketches

import (
	"testing"
	"unsafe"
)

func TestMakeHuge(t *testing.T) {
	type entry [24]byte
	for _, n := range []int{0, 1, minHugeBytes/24 - 1, minHugeBytes/24 + 1, 2_000_003} {
		s := MakeHuge[entry](n)
		if len(s) != n {
			t.Fatalf("MakeHuge(%d) has %d elements", n, len(s))
		}
		b := hugePart(s)
		if n*24 < minHugeBytes {
			if len(b) != 0 {
				t.Errorf("%d bytes of a slice of %d are in huge pages", len(b), n*24)
			}
			continue
		}
		from, to := uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&b[len(b)-1]))+1
		if from%pageBytes != 0 || to%pageBytes != 0 {
			t.Errorf("%d elements: huge pages from %x to %x", n, from, to)
		}
		first, last := uintptr(unsafe.Pointer(&s[0])), uintptr(unsafe.Pointer(&s[n-1]))+24
		if from < first || to > last || from-first >= pageBytes || last-to >= pageBytes {
			t.Errorf("%d elements from %x to %x: huge pages from %x to %x", n, first, last, from, to)
		}
		for i := range s {
			if s[i] != (entry{}) {
				t.Fatalf("element %d of %d is not zero", i, n)
			}
			s[i][23] = 1
		}
	}
}
