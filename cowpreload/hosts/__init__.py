"""The two servers that the stages are composed for; what is theirs alone lives here."""
