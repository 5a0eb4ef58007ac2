package load

import (
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/topo"
)

// Places are read by the names that programs give them. What is no degree is no place, except under the names of the
// Topology Zoo, where it is an error.
func TestPlaceNames(t *testing.T) {
	for _, c := range []struct{ x, y, longitude, latitude, want string }{
		{"Longitude", "Latitude", "13.4", "52.5", "known"},
		{"longitude", "latitude", "13.4", "52.5", "known"},
		{"lon", "lat", "13.4", "52.5", "known"},
		{"lng", "lat", "13.4", "52.5", "known"},
		{"lon", "lat", "1340000", "5250000", "unknown"},
		{"lon", "lat", "13.4", "NaN", "unknown"},
		{"x", "y", "13.4", "52.5", "unknown"},
		{"Longitude", "Latitude", "13.4", "95", "latitude \"95\" is no number from -90 to 90"},
	} {
		for file, text := range map[string]string{
			"x.gml": "graph [\nnode [ id 1 " + c.x + " " + c.longitude + " " + c.y + " " + c.latitude + " ]\n]",
			"x.graphml": "<graphml><key id='d1' attr.name='" + c.x + "'/><key id='d2' attr.name='" + c.y + "'/><graph>\n<node id='1'><data key='d1'>" +
				c.longitude + "</data><data key='d2'>" + c.latitude + "</data></node></graph></graphml>",
		} {
			g, err := Read(file, strings.NewReader(text))
			got := "unknown"
			if err != nil {
				got = err.Error()
			} else if p, ok := g.Place(0); ok && p == (topo.Place{Longitude: 13.4, Latitude: 52.5}) {
				got = "known"
			}
			if got != c.want && !strings.HasSuffix(got, ": "+c.want) {
				t.Errorf("%s, %s %s, %s %s: %s, want %s", file, c.x, c.longitude, c.y, c.latitude, got, c.want)
			}
		}
	}
}
