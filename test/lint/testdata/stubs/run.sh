#!/bin/sh
mktemp -d -t sextant.XXXXXX # XXX
