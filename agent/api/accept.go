package api

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// accepts reports whether a request names a media type among those that it accepts (RFC 9110
// section 12.5.1); one that takes anything does not name it.
func accepts(r *http.Request, media string) bool {
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		named, parameters, err := mime.ParseMediaType(one)
		if err != nil || named != media {
			continue
		}
		quality, err := strconv.ParseFloat(parameters["q"], 64)
		return err != nil || quality > 0
	}
	return false
}
