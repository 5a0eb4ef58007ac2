package settings

import (
	"fmt"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// Limits of a YAML file of hopscope. The parser's time grows with the square of some of these, so a file of a hundred
// kilobytes could keep it busy for minutes. The time of the lexer grows in proportion to the file.
const (
	maxTokens = 1 << 15 // without comments: some 2900 entries of exporters.profiles
	maxDepth  = 32      // of lists and mappings in one another on one line
)

// tokens finds the tokens of a YAML file, or the line at which it exceeds the limits of files written by hand.
func tokens(data []byte) (token.Tokens, *Problem) {
	all := lexer.Tokenize(string(data))
	count, depth, dashes, line := 0, 0, 0, 0
	for _, t := range all {
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
		}
		switch t.Type {
		case token.CommentType:
			continue
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType:
			dashes++
		case token.AliasType, token.AnchorType:
			return nil, &Problem{Line: line, Text: "anchors and aliases are not read"}
		}
		if count++; count > maxTokens {
			return nil, &Problem{Line: line, Text: fmt.Sprintf("more than %d words and signs", maxTokens)}
		}
		if depth > maxDepth || dashes > maxDepth {
			return nil, &Problem{Line: line, Text: fmt.Sprintf("more than %d lists and mappings in one another", maxDepth)}
		}
	}
	return all, nil
}

// CheckYAML returns an error if a decoder of YAML cannot be trusted with data, the content of file name. It bounds the
// decoder's work. It also refuses what has no place in a file of hopscope and leads the decoder astray. One example is
// a tag in place of a list, for which the decoder panics.
func CheckYAML(name string, data []byte) error {
	all, p := tokens(data)
	if p != nil {
		return &Problems{name, []Problem{*p}}
	}
	for _, t := range all {
		switch t.Type {
		case token.TagType, token.DirectiveType, token.MergeKeyType, token.MappingKeyType:
			return &Problems{name, []Problem{{Line: t.Position.Line, Text: "tags, directives, merges and complex keys are not read; a text that begins with !, % or ? stands in quotes"}}}
		}
	}
	return nil
}
