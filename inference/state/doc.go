// Package state writes what a program has to remember over a restart as bytes, and reads these bytes back.
//
// A [Coder] does both by the same walk. Each noun has one function that names its fields in their order, and the coder
// either appends them or fills them in. So no field can be written and not read, or the other way round.
//
//	func (r *run) code(c *state.Coder) {
//		state.Uint(c, "boot", &r.boot)
//		state.List(c, "numbers", 32, 3, &r.ring, (*numbered).code)
//	}
//
// Reading is bounded. Its memory is in proportion to the bytes that are there, whatever they contain, and each list has
// a limit of its own. The first error ends the reading, and everything after it stays zero. An error is an [*Error]
// with the field, the offset and the reason. Versions are the concern of the packages that have a state, see
// [Coder.Version].
//
// The package does not compress, does not sum, and keeps nothing of the bytes that it reads, except where a function
// states it.
package state
