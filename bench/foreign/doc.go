// Package foreign runs algorithms of other origins, in any language, over the instances of the benches: a program gets a question as
// one JSON object on standard input and prints its answer as another. What a question asks, and how an answer is judged, is with the
// benches: papers for plans, papers/digests for digests, findings for series, loop for suspects. The formats are in docs/harness.md.
package foreign
