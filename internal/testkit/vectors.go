package testkit

import (
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed vectors/*.hex
var files embed.FS

// VectorNames lists the worked examples of the formats, byte by byte, made by hand from the specifications. A decoder
// and an encoder that share a misunderstanding do not confirm each other then. Each example is described in
// vectors/README.md.
func VectorNames() []string {
	list, _ := fs.Glob(files, "vectors/*.hex") // the pattern is well formed
	for i, name := range list {
		list[i] = strings.TrimSuffix(path.Base(name), ".hex")
	}
	return list
}

// Vector returns a copy of the worked example called name.
func Vector(name string) ([]byte, error) {
	text, err := files.ReadFile("vectors/" + name + ".hex")
	if err != nil {
		return nil, fmt.Errorf("no vector %q: %w", name, err)
	}
	var digits strings.Builder
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		for _, field := range strings.Fields(line) {
			digits.WriteString(field)
		}
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		return nil, fmt.Errorf("vector %s: %w", name, err)
	}
	return b, nil
}
