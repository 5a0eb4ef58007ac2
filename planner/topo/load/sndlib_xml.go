package load

import (
	"encoding/xml"
	"io"
	"strings"
)

// readSNDlib reads the XML format of SNDlib, whose first element, network, the parser is behind.
func (p *graphMLParser) readSNDlib() error {
	s := sndlib{l: p.l}
	for {
		t, err := p.d.Token()
		if err == io.EOF {
			return s.finish()
		}
		if err != nil {
			return p.fault(err)
		}
		e, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		line, _ := p.d.InputPos()
		switch e.Name.Local {
		case "unit":
			err = p.fault(p.d.DecodeElement(&s.unit, &e))
		case "nodes":
			s.pixel = attr(e, "coordinatesType") == "pixel"
		case "node":
			var n struct {
				ID string `xml:"id,attr"`
				X  string `xml:"coordinates>x"`
				Y  string `xml:"coordinates>y"`
			}
			if err = p.fault(p.d.DecodeElement(&n, &e)); err == nil {
				err = s.node(line, n.ID, strings.TrimSpace(n.X), strings.TrimSpace(n.Y))
			}
		case "link":
			var k struct {
				ID       string `xml:"id,attr"`
				Source   string `xml:"source"`
				Target   string `xml:"target"`
				Capacity string `xml:"preInstalledModule>capacity"`
				Cost     string `xml:"routingCost"`
			}
			if err = p.fault(p.d.DecodeElement(&k, &e)); err == nil {
				trim := strings.TrimSpace
				err = s.link(sndlibLink{id: k.ID, source: trim(k.Source), target: trim(k.Target), capacity: trim(k.Capacity), cost: trim(k.Cost), line: line})
			}
		case "demands":
			err = p.fault(p.d.Skip())
		}
		if err != nil {
			return err
		}
	}
}
