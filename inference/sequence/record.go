package sequence

import "math/bits"

// A record is the bitmap of the numbers of a sequence: bit n mod its length is set if number n came. Its length is a
// power of two.

func place(seen []uint64, n uint32) (*uint64, uint64) {
	return &seen[n>>6&uint32(len(seen)-1)], 1 << (n & 63)
}

// zeros counts the bits of n numbers from first on that are not set, n at most the length.
func zeros(seen []uint64, first, n uint32) (missing uint32) {
	words := uint32(len(seen)) - 1
	for n > 0 {
		at := first & 63
		k := min(n, 64-at)
		missing += k - uint32(bits.OnesCount64(seen[first>>6&words]>>at<<(64-k)))
		first, n = first+k, n-k
	}
	return missing
}

// forget clears the bits of n numbers from first on, n at most the length.
func forget(seen []uint64, first, n uint32) {
	words := uint32(len(seen)) - 1
	for n > 0 {
		at := first & 63
		k := min(n, 64-at)
		seen[first>>6&words] &^= ^uint64(0) >> (64 - k) << at
		first, n = first+k, n-k
	}
}

// carry copies the bits of n numbers from first on to another record, in which they are not set.
func carry(to, from []uint64, first, n uint32) {
	for n > 0 {
		at := first & 63
		k := min(n, 64-at)
		to[first>>6&uint32(len(to)-1)] |= from[first>>6&uint32(len(from)-1)] & (^uint64(0) >> (64 - k) << at)
		first, n = first+k, n-k
	}
}

// missing yields the unset bits of n numbers from first on, in pieces that may follow each other. The number n is at
// most the length.
func missing(seen []uint64, first, n uint32, yield func(first, n uint32)) {
	words := uint32(len(seen)) - 1
	for n > 0 {
		at := first & 63
		k := min(n, 64-at)
		w := ^seen[first>>6&words] >> at << (64 - k) >> (64 - k)
		for w != 0 {
			from := uint32(bits.TrailingZeros64(w))
			length := uint32(bits.TrailingZeros64(^(w >> from)))
			yield(first+from, length)
			w &^= (1<<length - 1) << from
		}
		first, n = first+k, n-k
	}
}
