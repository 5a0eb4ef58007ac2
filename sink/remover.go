package sink

// Remover is a writer of points that removes what it stored, as by the number of its files. Removed counts since the start of the
// program, and may be called at any time.
type Remover interface {
	Removed() (files, points uint64)
}
