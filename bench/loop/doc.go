// Package loop measures the loop from findings to plans: each section of "hopscope-bench loop" is a file.
package loop
