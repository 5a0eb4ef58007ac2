// Package settings reads a YAML file over a struct of defaults, and describes that struct to operators.
//
// A settings struct carries everything in its tags:
//
//	Window time.Duration `yaml:"window" doc:"Length of a window." range:"100ms..1h"`
//	Policy string        `yaml:"policy" doc:"What happens when full." oneof:"drop|block"`
//
// One walk thus finds every problem of a file at once ([Load]). Another prints the effective settings ([Print]), and a
// third writes the reference page ([Reference]). Rules that no tag can express are the Validate methods of the
// structs. A general validation library would check the ranges; it would know neither lines nor the reference.
package settings
