// Package console reads the merged windows and the roster of a fleet from a log, and shows them on a page.
//
// A [Console] keeps nothing but what it needs to go on: it begins as far back as the page goes, and then follows. Slices of
// a window that come late replace what the page has of it. It knows log, roster and page by interfaces alone.
package console
