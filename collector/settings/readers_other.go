//go:build !unix

package settings

import "io/fs"

// Readers returns nothing: the mode of a file does not show its readers.
func Readers(fs.FileInfo) (readers string, ok bool) { return "", false }
