-- consistency: complete

