package notify

// Runbook returns the address of the section of docs/findings.md about a kind, relative to the page of a collector,
// which shows that page.
func Runbook(kind string) string { return "docs/findings#" + kind }
