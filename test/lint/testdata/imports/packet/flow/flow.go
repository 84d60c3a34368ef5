// Package flow imports what it may.
package flow

import _ "fixture/packet/srv6"
