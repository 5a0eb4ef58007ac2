//go:build unix

package settings

import (
	"io/fs"
	"os"
	"syscall"
)

// Readers returns the users beside the owner that can read a file, if there are any that should not.
func Readers(info fs.FileInfo) (readers string, ok bool) {
	st, _ := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode().Perm(); {
	case mode&0o004 != 0:
		return "all users", true
	case mode&0o040 != 0 && st != nil && int(st.Uid) == os.Geteuid():
		return "its group", true
	}
	return "", false
}
