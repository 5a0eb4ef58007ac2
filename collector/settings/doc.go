// Package settings reads a YAML file over a struct of defaults, and describes that struct to operators.
//
// A settings struct carries everything in its tags:
//
//	Window time.Duration `yaml:"window" doc:"Length of a window." range:"100ms..1h"`
//	Policy string        `yaml:"policy" doc:"What happens when full." oneof:"drop|block"`
//
// so that one walk finds every problem of a file at once ([Load]), another prints the effective settings ([Print]), and
// a third writes the reference page ([Reference]). Rules that no tag can say are the Validate methods of the structs.
// A general validation library would do the ranges; it would know neither lines nor the reference.
package settings
