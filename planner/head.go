package planner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Version is that of the JSON of plans. It rises when a reader of the present one could misunderstand what is written.
const Version = 1

// Head is the beginning of every plan's JSON. A plan type embeds it.
type Head struct {
	Kind    string `json:"kind,omitempty"`    // the family, by the name of its command
	Version int    `json:"version,omitempty"` // of the JSON
}

// header makes every plan that embeds a Head known as one.
func (h *Head) header() *Head { return h }

// headed is a plan, by what all of them begin with.
type headed interface{ header() *Head }

// Mark fills in what the JSON of a plan begins with.
func Mark(plan any, kind string) {
	if p, ok := plan.(headed); ok {
		*p.header() = Head{kind, Version}
	}
}

// ReadPlan reads the JSON of a plan of the given kind, as strictly as [ReadJSON]. A plan of another kind is an error that
// names both, and one of a later version is, too. A plan without kind and version is taken for one of this kind.
func ReadPlan(r io.Reader, kind string, plan any) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	var h Head
	if json.Unmarshal(b, &h) == nil { // otherwise the strict reader returns the error
		switch {
		case h.Kind != "" && h.Kind != kind:
			return fmt.Errorf("this is a plan of kind %q, and %q is wanted", h.Kind, kind)
		case h.Version < 0 || h.Version > Version:
			return fmt.Errorf("this is a plan of version %d, and only versions up to %d are known", h.Version, Version)
		}
	}
	return ReadJSON(bytes.NewReader(b), plan)
}

// ReadHead reads of a plan only what it begins with.
func ReadHead(r io.Reader) (h Head, err error) {
	b, err := io.ReadAll(r)
	if err == nil {
		err = json.Unmarshal(b, &h)
	}
	if err != nil {
		return h, jsonError(err, int64(len(b)))
	}
	return h, nil
}
