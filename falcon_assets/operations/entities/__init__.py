"""Operations on clusters, feeds and processes."""
