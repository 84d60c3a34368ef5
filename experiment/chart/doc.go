// Package chart draws lines over two axes as SVG: the plots of experiments. It has what these need,
// and no fonts: text is the reader's, and colours follow the reader's light or dark setting.
package chart
