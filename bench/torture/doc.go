// Package torture breaks what a collector depends on, and counts what is lost: the program as users run it, real stores, real
// datagrams, real files and kill -9. Each row of its table says how many reports were sent, how many the store has by its own
// count, and how many are counted as lost and where. What is left over is unaccounted, what is there twice is doubled, and both
// have to be 0.
//
// It is a test behind the build tag torture, because it takes minutes and the machine: make torture. With
// HOPSCOPE_TORTURE=full it runs longer. HOPSCOPE_TORTURE_TABLE names a file for the table in Markdown, or a page that has
// a place for it, such as docs/reliability.md; HOPSCOPE_TORTURE_JSON names one for the figures. HOPSCOPE_TORTURE_PROGRAM names a build
// of the program to torture instead of this one.
package torture
