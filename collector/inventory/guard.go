package inventory

import (
	"errors"

	"github.com/goccy/go-yaml/token"
)

// maxDepth is how deep lists and mappings may be nested. An inventory needs five.
const maxDepth = 32

// guard refuses what no inventory needs and what would cost the parser more than time in proportion to the text. The
// parser recurses for each list in a list, and its time grows with the square of the depth.
func guard(tokens token.Tokens) (line int, err error) {
	flow, entries, values, last := 0, 0, 0, 0 // nesting in brackets; dashes, and colons outside of brackets, in a row or line
	for _, t := range tokens {
		if t.Position != nil {
			line = t.Position.Line
		}
		if line != last {
			entries, values, last = 0, 0, line
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.MappingKeyType:
			return line, errors.New("anchors, aliases, tags and complex keys have no place in an inventory; a name that begins with &, *, ! or ? stands in quotes")
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType:
			entries++
		case token.MappingValueType:
			if flow == 0 {
				values++
			}
		}
		if flow > maxDepth || entries > maxDepth || values > maxDepth {
			return line, errors.New("lists and mappings are nested too deeply")
		}
	}
	return 0, nil
}
