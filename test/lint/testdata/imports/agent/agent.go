// Package agent imports from below.
package agent

import _ "fixture/packet/srv6"
