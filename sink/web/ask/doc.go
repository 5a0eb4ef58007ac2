// Package ask is the other side of the page: the client of a running collector or console for hops, flows and findings, and the
// text form of the answers.
package ask
