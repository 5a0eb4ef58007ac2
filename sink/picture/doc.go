// Package picture makes pictures of a network, as INT-path (INFOCOM 2019, figure 6) has them: a window is a matrix of
// switches by switches, whose cell at row a and column b is one value of the link from a to b. A series of windows is a
// film, a tensor of windows by switches by switches.
//
// Neighbours are near each other in the order of rows and columns ([Order]), so that what happens in one part of a
// network is one patch of its picture. A cell without a link, or without a report in the window, is absent, which is
// not zero. Where several links lead from one switch to another, their cell has the greatest value.
package picture
