package plain

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// The second decoder shares no code with the first one: it needs the standard library alone. Files that make bytes for
// both may import either.
func TestSharesNothing(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	decoders := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "random_") || file == "payloads.go" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		decoders++
		for _, i := range f.Imports {
			if strings.Contains(i.Path.Value, ".") {
				t.Errorf("%s imports %s, and so may share its faults", file, i.Path.Value)
			}
		}
	}
	if decoders == 0 {
		t.Error("no file of the decoder was found")
	}
}
