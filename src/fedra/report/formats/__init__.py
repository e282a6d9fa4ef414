"""Tables as text: Markdown, CSV and LaTeX, in which labels that others chose do no harm."""
