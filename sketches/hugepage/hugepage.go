// Package hugepage makes large slices for tables that are read all over.
//
// A table of a gigabyte has a quarter of a million pages of 4 KiB, many more than a core remembers the addresses of, so
// that besides the miss of the cache nearly every access waits for a walk through the page tables. With pages of 2 MiB
// that is over. Linux gives them to programs that ask, where the administrator leaves it to the programs (the usual
// setting of transparent huge pages, "madvise"); asking is all that is done here, and other systems are not asked.
package hugepage

import "unsafe"

const (
	pageBytes = 2 << 20
	// minBytes is the size from which on it is worthwhile.
	minBytes = 4 * pageBytes
)

// Make is make([]T, n), in huge pages where the slice is large and the system has them.
func Make[T any](n int) []T {
	s := make([]T, n)
	if bytes := inner(s); len(bytes) > 0 {
		advise(bytes)
	}
	return s
}

// inner is the part of s that whole huge pages cover; nothing of a small slice.
func inner[T any](s []T) []byte {
	var t T
	n := uintptr(len(s)) * unsafe.Sizeof(t)
	if n < minBytes {
		return nil
	}
	p := unsafe.Pointer(unsafe.SliceData(s))
	skip := -uintptr(p) & (pageBytes - 1)
	return unsafe.Slice((*byte)(unsafe.Add(p, skip)), (n-skip)&^(pageBytes-1))
}
