"""The packages subject: installed distributions against pins."""
