package settings

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// Place is a path of the settings that is written, or read, for as long as a collector runs.
type Place struct {
	Key, Path string // of the setting
	What      string // "the spool of influx"
	Dir, Read bool
}

// resolve returns one name for all names of a file that may not exist yet. It follows symbolic links in the part of
// the path that exists.
func resolve(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	rest := ""
	for p := path; ; {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(real, rest)
		}
		up := filepath.Dir(p)
		if up == p {
			return path
		}
		p, rest = up, filepath.Join(filepath.Base(p), rest)
	}
}

// sameFile reports whether both exist and are one file, as two mounts of a file system can make them.
func sameFile(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}

// Loopback reports whether an address of host and port is of this machine alone.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return true // what is no address is reported elsewhere
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Overlaps finds pairs that share a place, by whatever names, or of which one lies in the directory of the other.
func Overlaps(list []Place) (problems []Problem) {
	for i := range list {
		for k := range i {
			a, b := &list[k], &list[i]
			if a.Read && b.Read {
				continue // a capture may be read under two names
			}
			problem := func(format string, args ...any) {
				problems = append(problems, Problem{Path: b.Key, Text: fmt.Sprintf(format, args...)})
			}
			switch pa, pb := resolve(a.Path), resolve(b.Path); {
			case pa == pb || sameFile(pa, pb):
				problem("%s is also where %s are kept (%s); each needs a place of its own", b.Path, a.What, a.Key)
			case a.Dir && strings.HasPrefix(pb, pa+string(filepath.Separator)):
				problem("%s lies inside of %s, where %s are kept (%s)", b.Path, a.Path, a.What, a.Key)
			case b.Dir && strings.HasPrefix(pa, pb+string(filepath.Separator)):
				problem("%s holds %s, where %s are kept (%s)", b.Path, a.Path, a.What, a.Key)
			}
		}
	}
	return problems
}
