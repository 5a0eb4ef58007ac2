// Package ask is the other side of the page: what a running collector or console answers about hops, flows and findings, and
// how that is written for people.
package ask
