package settings

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
)

// Retire is a key without meaning. Files that contain it are read, with a warning that names its replacement.
type Retire struct {
	Key     string
	Instead string // what does its work now, the end of a sentence: "events.false_a_day sets all limits of hops"
}

// retired is a settings struct, that of a whole file, with keys that mean nothing any more.
type retired interface{ Retirements() []Retire }

// readRetired reads over a key that means nothing any more, and reports whether it is one.
func (l *loader) readRetired(kv *ast.MappingValueNode, path string) bool {
	at := join(path, keyOf(kv))
	for _, r := range l.retired {
		if r.Key == pattern(at) {
			l.warnings = append(l.warnings, Problem{lineOf(kv.Key), at, fmt.Sprintf("is not read any more: %s", r.Instead)})
			return true
		}
	}
	return false
}
