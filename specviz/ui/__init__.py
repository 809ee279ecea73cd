"""Everything that knows Streamlit."""
