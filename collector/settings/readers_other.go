//go:build !unix

package settings

import "io/fs"

// Readers says nothing: the mode of a file does not tell who can read it.
func Readers(fs.FileInfo) (who string, ok bool) { return "", false }
