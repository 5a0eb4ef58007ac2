//go:build !unix

package pcapfile

import "os"

const nonBlocking = 0

// readable leaves waiting to the read itself, which nothing interrupts.
func readable(*os.File) (bool, error) { return true, nil }
