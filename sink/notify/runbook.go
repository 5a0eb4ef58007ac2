package notify

import "github.com/hopscope/hopscope/inference"

// runbookPath is the path of docs/findings.md on the page of a collector.
const runbookPath = "/docs/findings"

// Runbook returns the address of the section about a kind on the page that base names. An empty base is runbookPath,
// relative to the page of a collector.
func Runbook(base string, k inference.Kind) string {
	if base == "" {
		base = runbookPath
	}
	return base + "#" + k.String()
}
