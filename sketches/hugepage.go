package sketches

import "unsafe"

const (
	pageBytes = 2 << 20
	// minHugeBytes is the size from which on huge pages are worthwhile.
	minHugeBytes = 2 * pageBytes
)

// MakeHuge is make([]T, n), in huge pages where the slice is large and the system has them. It is for tables that are
// read at random.
//
// A table of a gigabyte has a quarter of a million pages of 4 KiB, far more than a core caches addresses of. Nearly
// every access misses the cache and then waits for a walk through the page tables as well. With pages of 2 MiB that
// walk is rare. Linux gives them to programs that ask, if the administrator leaves the choice to programs (the usual
// setting of transparent huge pages, "madvise"). MakeHuge only asks; the system may refuse. Systems other than Linux
// are not asked.
func MakeHuge[T any](n int) []T {
	s := make([]T, n)
	if bytes := hugePart(s); len(bytes) > 0 {
		adviseHuge(bytes)
	}
	return s
}

// hugePart is the part of s that whole huge pages cover; it is empty for a small slice.
func hugePart[T any](s []T) []byte {
	var t T
	n := uintptr(len(s)) * unsafe.Sizeof(t)
	if n < minHugeBytes {
		return nil
	}
	p := unsafe.Pointer(unsafe.SliceData(s))
	skip := -uintptr(p) & (pageBytes - 1)
	return unsafe.Slice((*byte)(unsafe.Add(p, skip)), (n-skip)&^(pageBytes-1))
}
