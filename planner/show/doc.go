// Package show writes plans for display: a table of text, a picture in SVG, and the difference of two plans. Each
// family of plans has one file for its table and one for its picture. Problem and plan determine the output.
//
// The package makes no plan and checks none. Canvas, colours and the drawing of graphs are in planner/draw.
package show
