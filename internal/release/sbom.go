package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

const module = "github.com/hopscope/hopscope"

// writeSBOM writes the list of what a program consists of, in the form of CycloneDX 1.6. It is made from what the linker noted in
// the program; cyclonedx-gomod does that too, and does not know of the packages in the page.
func (r *release) writeSBOM(b *built) error {
	sum, err := sumOf(b.path)
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(r.dist, r.base(b)+".cdx.json"))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(r.bom(b, sum), cdx.SpecVersion1_6); err != nil {
		return err
	}
	return f.Close()
}

func (r *release) bom(b *built, sum string) *cdx.BOM {
	bom := cdx.NewBOM()
	self := cdx.Component{
		BOMRef: "pkg:golang/" + module + "@v" + r.version, PackageURL: "pkg:golang/" + module + "@v" + r.version,
		Type: cdx.ComponentTypeApplication, Name: "hopscope", Version: r.version, Description: "Collector for in-band network telemetry",
		Licenses:   licenceChoices([]string{"Apache-2.0"}),
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}},
		Properties: &[]cdx.Property{{Name: "system", Value: b.os + "/" + b.arch}},
	}
	bom.Metadata = &cdx.Metadata{Timestamp: r.when.Format(time.RFC3339), Component: &self}
	// It names this list: the same program has the same number.
	id := sha256.Sum256([]byte(self.BOMRef + " " + b.os + "/" + b.arch + " " + sum))
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // version 8 of RFC 9562, of the maker's own
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
	var list []cdx.Component
	var refs []string
	none := []cdx.Dependency{}
	for _, p := range b.parts {
		c := cdx.Component{BOMRef: p.url, PackageURL: p.url, Type: cdx.ComponentTypeLibrary, Name: p.name, Version: p.version, Licenses: licenceChoices(p.licences)}
		if p.sum != "" {
			c.Properties = &[]cdx.Property{{Name: "go.sum", Value: p.sum}}
		}
		list, refs, none = append(list, c), append(refs, p.url), append(none, cdx.Dependency{Ref: p.url})
	}
	bom.Components = &list
	dependencies := append([]cdx.Dependency{{Ref: self.BOMRef, Dependencies: &refs}}, none...)
	bom.Dependencies = &dependencies
	return bom
}

// licenceChoices are licences as CycloneDX has them.
func licenceChoices(ids []string) *cdx.Licenses {
	var list cdx.Licenses
	for _, id := range ids {
		list = append(list, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return &list
}
